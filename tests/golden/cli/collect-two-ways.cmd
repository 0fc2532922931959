drdotnet-trace collect -p 1 --diagnostic-port /tmp/x
