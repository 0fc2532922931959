drdotnet-trace fixtures/synthetic-v6.nettrace
