/** What the setting `logFiles` may name. */

/** A path below /var/log without `.` and `..`: `*` stands for any characters of a name, `?` for one. */
export const logPattern = /^\/var\/log(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/;
