# one event of each kind that the program writes itself
drdotnet-trace events --provider Warehouse-Rich --format ndjson fixtures/rich-net10.nettrace.zst |
	awk '{ name = $0; sub(/.*"name":"/, "", name); sub(/".*/, "", name) } !seen[name]++' | cut -c 1-600
