drdotnet-trace collect -p 1 -p 2 -o -
