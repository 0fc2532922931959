drdotnet-trace fixtures/synthetic-v6.nettrace summary cpu gc tasks
