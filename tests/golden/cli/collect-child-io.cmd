drdotnet-trace collect -p 1 --show-child-io
