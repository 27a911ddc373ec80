/** The panel itself, for plugins that guard it or prove its backups. */

/** One address and port on which the panel or its engine takes connections. */
export interface PanelListener {
    /** `panel`: the API and the pages. `http`, `https`: the sites that the engine serves. */
    readonly role: 'panel' | 'http' | 'https';
    /** `udp` carries HTTP/3. */
    readonly protocol: 'tcp' | 'udp';
    /** An IPv4 or IPv6 address. `0.0.0.0` is every IPv4 address of the machine, `::` every address of both kinds. */
    readonly address: string;
    readonly port: number;
}

/** How the boot of a copy of a panel went. */
export interface PanelRehearsal {
    readonly booted: boolean;
    /** Why it did not boot; null when it did. */
    readonly message: string | null;
    /** Milliseconds until it took requests; 0 when it did not, as are the numbers below. */
    readonly readyMs: number;
    readonly hosts: number;
    readonly users: number;
    readonly plugins: number;
    /** Whether its audit log is whole. */
    readonly auditChain: boolean;
}

/** What is rehearsed, and until when. */
export interface RehearsalInput {
    readonly folder: string;
    readonly signal: AbortSignal | null;
}

/** `ctx.panel`. Each member but `url` and `hasPlugin` needs an entry of its own in the capability `panel`. */
export interface PanelService {
    /** The address that users have for the panel, as the admin set it (`panel.url`), such as `https://panel.example`; null while none is set. */
    url(): Promise<string | null>;
    /**
     * Whether the panel knows a plugin of this name: it is installed, in whatever state, or its data were kept when it was uninstalled. When it
     * was removed with its data it is not known: what was kept for it has no owner any more.
     */
    hasPlugin(name: string): Promise<boolean>;
    /**
     * Where the panel and its engine listen now. An engine that is stopped listens nowhere; one that runs and does not answer is listed with
     * what it was last given. Unix sockets, such as the one that controls the engine, are no part of it. Needs `panel: listeners`.
     */
    listeners(): Promise<readonly PanelListener[]>;
    /**
     * Absolute paths of the folders in which the panel and its engine keep their own files, keys among them. `ctx.files` opens none of them; a
     * program that a plugin starts could, so leave them out of what it reads. Needs `panel: folders`.
     */
    folders(): Promise<readonly string[]>;
    /**
     * Boots a copy of a panel's data folder, such as `backup.collect` gives it, in a process of its own: in safe mode, on loopback, without an
     * engine, and with nothing sent anywhere. The folder is only read; `ctx.files` must be able to open it. One rehearsal runs at a time,
     * others wait. Needs `panel: rehearse`.
     *
     * @throws NOT_FOUND 40400 without such a folder; CAPABILITY_MISSING 50305
     */
    rehearse(folder: string, options?: { readonly signal?: AbortSignal }): Promise<PanelRehearsal>;
}
