drdotnet-trace --verison
