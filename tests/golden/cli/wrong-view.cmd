drdotnet-trace report --view fast fixtures/synthetic-v4.nettrace
