drdotnet-trace report fixtures
