drdotnet-trace collect --dport example.org:9000,connect
