drdotnet-trace collect -o none -- true
