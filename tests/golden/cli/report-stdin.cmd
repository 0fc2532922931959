drdotnet-trace report - summary < fixtures/synthetic-v4.nettrace
