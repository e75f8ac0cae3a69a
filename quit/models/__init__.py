"""Everything that runs a model, behind the protocols of :mod:`quit.models.protocols`.

``factory`` makes the models that a profile names, each once. In packages: ``encoders`` (texts to vectors), ``minilm``
(the embedded encoder and its arithmetic), ``equivalence`` (of answers), ``readers``, and ``generation`` (language
models: in process, on servers, and the cache of their replies). In modules: ``judges``, ``question_type``,
``convergence`` with its features and ``convergence_scored``, ``user_models`` (a user's readers and judges) and
``user_classes`` (which finds them).

What they share: ``prompting`` (prompts as files), ``folders`` (of model files, and their checksums), ``fetching``
(models that come from PyPI), ``loading`` (one way to load from a folder or the hub), ``linear`` (matrix products of the
same bits everywhere), and ``limits`` (notes on texts that an embedded model cannot read properly).
"""
