/** Where a repository lies, and what opens it. */

/** The kinds of repositories. */
export type RepositoryType = 'local' | 'sftp' | 's3' | 'rest' | 'webdav' | 'rclone';

/** Where a repository lies, without a secret. Which fields are there follows from the type. */
export interface Connection {
    readonly type: RepositoryType;
    /** `local`: absolute. `sftp`: absolute, or relative to the account's folder. `rclone`: below the remote. */
    readonly path?: string | undefined;
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly username?: string | undefined;
    /** As in a file of known hosts, without the name: `ssh-ed25519 AAAA…`. */
    readonly hostKey?: string | undefined;
    readonly endpoint?: string | undefined;
    readonly bucket?: string | undefined;
    readonly prefix?: string | undefined;
    readonly region?: string | undefined;
    readonly accessKeyId?: string | undefined;
    readonly pathStyle?: boolean | undefined;
    /** Certificates in PEM that are trusted in place of the machine's. */
    readonly ca?: string | undefined;
    readonly url?: string | undefined;
    /** Type of an rclone remote. */
    readonly remoteType?: string | undefined;
    /** Options of that remote that rclone wants obscured. */
    readonly obscured?: readonly string[] | undefined;
}

/** What opens a repository. Sealed as one JSON text. */
export interface Secrets {
    readonly password: string;
    readonly privateKey?: string | undefined;
    readonly loginPassword?: string | undefined;
    readonly secretAccessKey?: string | undefined;
    /** Options of an rclone remote. */
    readonly options?: Readonly<Record<string, string>> | undefined;
}

/** A repository's address as one text: two repositories never have the same. */
export function placeOf(connection: Connection): string {
    const { type, path = '', host, port, username, endpoint, bucket, prefix = '', url } = connection;
    switch (type) {
        case 'local':
            return path;
        case 'sftp':
            return `sftp://${username}@${host}:${port ?? 22}/${path}`;
        case 's3':
            return `s3:${endpointUrl(endpoint ?? '').href}${bucket}/${prefix}`;
        case 'rest':
        case 'webdav':
            return `${type}:${url}`;
        case 'rclone':
            return `rclone:${connection.remoteType}:${path}`;
    }
}

/** The names that a program connects to for a repository; what rclone connects to without being told is not known. */
export function hostsOf(
    { type, host, endpoint, url }: Connection,
    { options = {} }: Secrets
): readonly string[] {
    switch (type) {
        case 'local':
            return [];
        case 'sftp':
            return [host ?? ''];
        case 's3':
            return [hostOf(endpointUrl(endpoint ?? ''))];
        case 'rest':
        case 'webdav':
            return [hostOf(new URL(url ?? ''))];
        case 'rclone':
            return ['host', 'url', 'endpoint', 'auth', 'auth_url', 'token_url', 'server']
                .map((name) => options[name])
                .filter((value) => value !== undefined && value !== '')
                .map((value) => (URL.canParse(value ?? '') ? hostOf(new URL(value ?? '')) : (value ?? '')))
                .filter((value) => value !== '');
    }
}

/** The address of an S3 server; `https` when it names no protocol. */
export function endpointUrl(endpoint: string): URL {
    return new URL(/^https?:\/\//.test(endpoint) ? endpoint : `https://${endpoint}`);
}

function hostOf({ hostname }: URL): string {
    return hostname.replace(/^\[(.*)\]$/, '$1');
}
