drdotnet-trace report fixtures/synthetic-v4.nettrace <&- >&- 2>&-
