/** Releases of servers: numbers such as `11.4`. */

/** Whether a text can be a release: what a tag of an official image begins with. */
export function isRelease(text: string): boolean {
    return /^\d{1,3}(\.\d{1,3}){0,2}$/.test(text);
}

/** Whether the first release is newer than the second; one that says less stands for all that it begins. */
export function isNewer(release: string, than: string): boolean {
    const [one, other] = [release, than].map((text) => text.split('.').map(Number));
    const at = (one ?? []).findIndex((part, index) => part !== other?.[index]);
    return at !== -1 && (one?.[at] ?? 0) > (other?.[at] ?? -1);
}
