drdotnet-trace events --stacks fixtures/synthetic-v6.nettrace
