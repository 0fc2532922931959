drdotnet-trace collect -p shop
