/** Names of branches, tags and commits. */

/** A whole commit id: SHA-1 or SHA-256. */
export const commitForm = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/**
 * The rules of git-check-ref-format(1) for one branch or tag, and that it does not begin with `-`: components that neither begin with a dot nor end with
 * `.lock`, no `..`, no `@{`, none of the characters that git reads as operators.
 */
export const refForm =
    /^(?![-/@]?$)(?![-/])(?!.*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)))(?!\.)(?!.*[./]$)[^\s\p{C}~^:?*[\\]{1,200}$/u;
