/** A host as `GET /api/hosts` shows it: the part that the list uses. */
export interface HostRow {
    readonly id: number;
    readonly domain: string;
    readonly aliases: readonly string[];
    readonly type: string;
    readonly upstream: string | null;
    readonly upstreams: readonly unknown[];
    readonly redirect: { readonly to: string } | null;
    readonly static: { readonly root: string } | null;
    readonly php: { readonly root: string } | null;
    readonly ssl: boolean;
    readonly enabled: boolean;
    readonly state: string;
    readonly stateMessage: string | null;
    readonly owner: string | null;
    readonly tags: readonly string[];
}

/** Where a host leads to. */
export function targetOf({ upstream, upstreams, redirect, static: files, php }: HostRow): string {
    const more = upstreams.length > 1 ? ` +${upstreams.length - 1}` : '';
    return upstream === null ? (redirect?.to ?? files?.root ?? php?.root ?? '') : upstream + more;
}
