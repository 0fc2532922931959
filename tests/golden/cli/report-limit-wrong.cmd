for limit in gc.tim=3 gc gc.time gc.time= gc.time=x gc.time=3ms gc.long-pause=300 gc.long-pause=-1ms alloc.rate=50 =5; do
	drdotnet-trace report x --limit "$limit" 2>&1 | head -1
done
