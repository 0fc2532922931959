# SPDX-License-Identifier: MIT
# bash completion for drdotnet-trace.  The words come from the program's own option tables.

_drdotnet_trace_ours()
{
	"${COMP_WORDS[0]}" --list-options "$@" 2>/dev/null
}

_drdotnet_trace()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
	local command=${COMP_WORDS[1]} words

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words=$(_drdotnet_trace_ours | cut -f1)
		mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$current"
			compgen -f -- "$current")
		return
	fi
	if [[ $current == -* ]]; then
		words=$(_drdotnet_trace_ours "$command" | cut -f1)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
		return
	fi
	if [[ $command == collect && $previous == --profile ]]; then
		mapfile -t COMPREPLY < <(compgen -W "default cpu gc alloc tasks locks threadpool \
			threads exceptions jit counters http database heap-tasks all dotnet-common \
			dotnet-sampled-thread-time cpu-sampling gc-verbose gc-collect" -- "$current")
		return
	fi
	if [[ $previous == -* ]]; then
		# Small letters are the values themselves, capitals only say what is wanted.
		words=$(_drdotnet_trace_ours "$command" | sed -n "s/^$previous\t//p")
		if [[ $words == [a-z]* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
			return
		fi
	fi
	if [[ $command == counters && $COMP_CWORD == 2 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "collect" -- "$current")
		return
	fi
	if [[ $command == history && $COMP_CWORD == 2 ]]; then
		words="list show trend top regressions mark export"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
		return
	fi
	if [[ $command == process ]]; then
		words="info env resume dump perfmap"
		[[ $previous == perfmap ]] && words="on off"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -f -- "$current")
	if [[ $command == report && -n ${COMP_WORDS[2]} ]] && ((COMP_CWORD > 2)); then
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W \
			"summary cpu gc alloc tasks locks threadpool threads exceptions jit counters stacks" \
			-- "$current")
	fi
}

complete -o filenames -F _drdotnet_trace drdotnet-trace
