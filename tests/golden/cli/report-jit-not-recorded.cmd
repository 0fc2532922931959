# Without events of methods as they are loaded nothing was counted: null, not 0.
drdotnet-trace report --json fixtures/cpu-net10.nettrace.zst jit >out.json
python3 -c 'import json
j = json.load(open("out.json"))["jit"]
print(j["count"], j["code_bytes"], j["dynamic"]["count"], j["assemblies"]["loaded"])'
drdotnet-trace report fixtures/cpu-net10.nettrace.zst jit | sed -n '/^JIT/,$p' | head -4
