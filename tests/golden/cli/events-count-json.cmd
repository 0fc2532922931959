drdotnet-trace events --count --json fixtures/synthetic-v4.nettrace
