drdotnet-trace events -o no/such/folder/x fixtures/synthetic-v4.nettrace
