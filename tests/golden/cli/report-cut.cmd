zstd -q -dc fixtures/gc-net8.nettrace.zst | head -c 1000000 | drdotnet-trace report --json - gc > out.json
echo "exit $?"
python3 -c "import json; r = json.load(open(\"out.json\")); print(r[\"trace\"][\"complete\"], r[\"trace\"][\"truncated_at\"], r[\"gc\"][\"count\"])"
