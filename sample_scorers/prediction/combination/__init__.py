# SPDX-License-Identifier: Apache-2.0
"""The prediction scorer that the product ships: a combination of methods, by their past errors.

`forecast` and `members` are pure numpy and know nothing of scorers; `score` makes scores of them,
`past_forecasts` judges them by later requests, and `app` serves both.
"""
