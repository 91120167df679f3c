// The completion scripts of the shells. Each calls `tenantry __complete` with the words that are typed.

/** The scripts by shell. Without candidates, each completes names of files. */
export const scripts: Readonly<Record<string, string>> = {
  bash: `# Completion of tenantry for bash. Load it with: source <(tenantry completion bash)
_tenantry() {
  local IFS=$'\\n'
  COMPREPLY=($(tenantry __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _tenantry tenantry
`,
  zsh: `#compdef tenantry
# Completion of tenantry for zsh. Load it with: source <(tenantry completion zsh), after compinit
_tenantry() {
  local line
  local -a lines candidates
  lines=("\${(@f)$(tenantry __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( \${#candidates} )); then
    _describe 'tenantry' candidates
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_tenantry" ]; then
  _tenantry "$@"
else
  compdef _tenantry tenantry
fi
`,
  fish: `# Completion of tenantry for fish. Load it with: tenantry completion fish | source
function __tenantry_complete
  set -l words (commandline -opc)
  set -e words[1]
  set -l lines (tenantry __complete -- $words (commandline -ct) 2>/dev/null)
  if test (count $lines) -gt 0
    printf '%s\\n' $lines
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c tenantry -f -a '(__tenantry_complete)'
`,
}
