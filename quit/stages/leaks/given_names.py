"""Given names so common that sharing one gives nobody away (John Ruskin says nothing of John Millais)."""

from __future__ import annotations

GIVEN_NAMES = frozenset(
    """adam alan albert alexander alfred alice andrew angela anna anne anthony antonio arthur barbara benjamin
    bernard bill bob brian bruce carl carlos carol caroline catherine charles charlie charlotte chris
    christian christopher claude daniel david deborah dennis diana dick donald dorothy douglas edgar edith
    edmund edward edwin elizabeth ellen emily emma eric ernest eugene eva evelyn florence frances francis
    frank franz fred frederick friedrich gary geoffrey george gerald gilbert giovanni gordon grace graham
    hans harold harriet harry heinrich helen henri henry herbert herman howard hugh isaac isabella ivan jack
    jackie jacob jacques james jane janet jason jean jeff jeffrey jennifer jerry jessica jim jimmy joan
    johann john johnny jon jonathan jose joseph juan judith julia julie karen karl kate katherine keith
    kenneth kevin larry laura lawrence leonard leon lewis linda lisa louis louise lucy ludwig luke marcus
    margaret maria marie mark martha martin mary matthew michael michel michelle mike nancy neil nicholas
    nick nicolas norman oliver oscar otto patricia patrick paul peter philip pierre rachel ralph raymond
    rebecca richard robert roger roland ronald rose roy russell ruth samuel sandra sarah scott sharon sidney
    simon sophia stanley stephen steve steven stuart susan theodore teresa thomas timothy tommy tony victor
    victoria vincent virginia walter wayne wilhelm william wolfgang""".split()
)
"""Lower-case English and western European given names."""
