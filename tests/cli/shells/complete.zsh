# complete.zsh SCRIPT: what zsh would complete each line of standard input with, a line each. Completion runs only in an
# editor on a terminal, so there is one, and what is added in it is written down.
zmodload zsh/zpty
folder=$(mktemp -d)
cp $1 $folder/_levelhead
cat >$folder/lines
cat >$folder/inside <<'END'
fpath=($folder $fpath)
autoload -Uz compinit
compinit -u -d $folder/dump
compadd() {
  # Those only filter a list for a later call.
  if ((${argv[(I)-[OAD]*]} == 0)); then
    local -a found
    builtin compadd -O found "$@"
    hits+=($found)
  fi
  builtin compadd "$@"
}
zle -C probe complete-word _main_complete
ask() {
  local line
  local -a hits
  while IFS= read -r line; do
    BUFFER=$line CURSOR=$#line hits=()
    zle probe
    print -r -- ${(j:,:)hits}
  done <$folder/lines >$folder/out
  exit
}
zle -N ask
bindkey '^A' ask
END
zpty probe "folder=${(q)folder} PS1=ready zsh -f -i"
zpty -w probe "folder=${(q)folder}; source $folder/inside; PS1='rea''dy:'"
zpty -r probe seen '*ready:*'
zpty -w -n probe $'\x01'
while zpty -r probe seen 2>/dev/null; do :; done
zpty -d probe
cat $folder/out
rm -r $folder
