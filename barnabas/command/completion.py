"""`barnabas completion`: a script that teaches a shell to complete the command line.

The scripts are small and know nothing of our arguments; `barnabas __complete` finds the candidates. See candidates.py.
"""

from __future__ import annotations

import argparse
from typing import Final

_EPILOG: Final = """\
bash 4 or later, in ~/.bashrc:     source <(barnabas completion bash)
zsh, in ~/.zshrc after compinit:   source <(barnabas completion zsh)
fish, once:                        barnabas completion fish > ~/.config/fish/completions/barnabas.fish"""

# What is typed may be a path (.venv/bin/barnabas) or an alias, which cannot be run from here.
_BASH: Final = r"""
_barnabas() {
    local command=${COMP_WORDS[0]} line
    type -P -- "$command" >/dev/null || command=barnabas
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default; return ;;
            :directories) compopt -o dirnames; return ;;
            *=) compopt -o nospace ;;
        esac
        COMPREPLY+=("$line")
    done < <("$command" __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _barnabas barnabas
"""

_ZSH: Final = r"""#compdef barnabas
_barnabas() {
    local command=${words[1]} line
    local -a lines complete open
    whence -p -- "$command" >/dev/null || command=barnabas
    lines=("${(@f)$("$command" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    case ${lines[1]} in
        :files) _files; return ;;
        :directories) _files -/; return ;;
    esac
    for line in $lines; do
        if [[ $line == *= ]]; then open+=("$line"); else complete+=("$line"); fi
    done
    _describe 'argument' complete -- open -S ''
}
if [[ $funcstack[1] == _barnabas ]]; then
    _barnabas "$@"
else
    compdef _barnabas barnabas
fi
"""

_FISH: Final = r"""
function __barnabas_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l command $words[1]
    set -e words[1]
    type -q -f -- $command; or set command barnabas
    set -l lines ($command __complete fish $words "$current" 2>/dev/null)
    switch "$lines[1]"
        case :files
            __fish_complete_path $current
        case :directories
            __fish_complete_directories $current
        case '*'
            printf '%s\n' $lines
    end
end
complete -c barnabas -f -a '(__barnabas_complete)'
"""

_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("shell", metavar="SHELL", choices=_SCRIPTS, help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    print(_SCRIPTS[options.shell].strip())
    return 0
