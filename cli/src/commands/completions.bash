# Readline splits words at @ and :, which occur in the names of versions. So the
# line is split at blanks here, and the part of the word that readline has
# already is removed from what is offered.
_touchmark_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" words word reply given IFS=$' \t\n'
    read -a words <<< "$line"
    [[ "$line" =~ [[:blank:]]$ ]] && words+=("")
    word="${words[-1]}"
    given="${word%"$2"}"
    local IFS=$'\013'
    local replies=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$((${#words[@]} - 1))" \
        _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE=false \
        COMPLETE=bash \
        touchmark -- "${words[@]}" 2> /dev/null \
    ) )
    COMPREPLY=()
    for reply in "${replies[@]}"; do
        COMPREPLY+=("${reply#"$given"}")
    done
    # After a directory, or an @ before a version, the word continues.
    if [[ ${#COMPREPLY[@]} -ne 1 || ! "${COMPREPLY[0]}" =~ [=/:@]$ ]]; then
        compopt +o nospace 2> /dev/null
    fi
}
complete -o nospace -o bashdefault -F _touchmark_complete touchmark
