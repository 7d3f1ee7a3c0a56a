"""Match orders without messaging: print how many orders trade in narrow and in wide ranges of prices."""

import numpy as np

from exchange_simulation import OrderBook, orders

for width in (10, 100, 400):
    low = 500 - width // 2
    stream = orders(seed=1, count=200_000, prices=(low, low + width - 1))
    book = OrderBook()
    answers = book.match(stream)
    traded = np.unique(answers.trades["id"]).size
    print(
        f"{width:>4} prices: {len(answers.trades):,} trades of {traded:,} orders; "
        f"{len(book.bids) + len(book.asks):,} orders rest, best {book.best_bid} and {book.best_ask}"
    )
