drdotnet-trace collect -p 1 -o /data/100%/x.nettrace
