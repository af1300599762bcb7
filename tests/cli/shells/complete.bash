# complete.bash SCRIPT: what bash would complete each line of standard input with, a line each.
source "$1"
while IFS= read -r line; do
  # As readline splits it: = and : are words of their own, and a space at the end starts an empty one.
  read -ra COMP_WORDS <<<"$(sed 's/[=:]/ & /g' <<<"$line")"
  if [[ $line == *' ' ]]; then COMP_WORDS+=(''); fi
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _levelhead levelhead
  printf '%s\n' "$(IFS=,; printf '%s' "${COMPREPLY[*]}")"
done
