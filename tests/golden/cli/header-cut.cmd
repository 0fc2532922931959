head -c 40 fixtures/synthetic-v4.nettrace > x.nettrace
drdotnet-trace report x.nettrace
