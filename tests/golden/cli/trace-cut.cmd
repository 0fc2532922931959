head -c 440 fixtures/synthetic-v4.nettrace > x.nettrace
drdotnet-trace events x.nettrace
