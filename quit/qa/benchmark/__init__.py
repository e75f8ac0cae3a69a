"""The inferential QA benchmark (paper, sections 4 and 5): retriever, reranker, reader over a frozen release."""
