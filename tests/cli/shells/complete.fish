# complete.fish SCRIPT: what fish would complete each line of standard input with, a line each.
source $argv[1]
while read -l line
    set -l found (complete -C $line | string replace -r '\t.*' '')
    echo (string join -- , $found)
end
exit 0
