"""Query decomposition as a bandit (Petcu et al.): which sub-query's ranking is read one document further?

| paper | file |
|---|---|
| 3.2, figure 1: a request, its sub-queries, their rankings | ``request``, ``arms``, ``requests`` |
| table 1: rewards | ``rewards`` |
| algorithms 1 and 2: beliefs and their updates | ``posteriors`` |
| table 1: policies, by name | ``policies`` |
| algorithms 1 and 2, 3.5: the loop, over many runs at once | ``simulate`` |
| 4.3: precision, recall, alpha-nDCG | ``metrics`` |
| figure 4, tables 3 and 4: all policies, all budgets | ``experiment``, ``files`` |
| A.1, figures 6 and 7: sub-queries by a language model | ``decompose`` |
| figure 5: relevance by rank | ``rank_relevance`` |
| figure 12: n, tau and lambda | ``tuning`` |
| 5.2: reports from what policies picked | ``picked``, ``reports`` |
"""
