drdotnet-trace report --tpo 5 fixtures/synthetic-v4.nettrace
