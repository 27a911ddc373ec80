/** Where the batch API of Git LFS of a repository is, and what opens it (git-lfs `docs/api/server-discovery.md`). */
import { joi } from '@portico/sdk';

import { DeploymentFailed } from '../../errors.ts';
import { authorizationOf } from '../credentials.ts';
import type { Git, Remote } from '../git.ts';
import { type Address, parseAddress } from './address.ts';

/** A server of Git LFS. */
export interface Endpoint {
    /** Without a slash at the end. */
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
}

const schema = joi
    .object({ href: joi.string().max(2_000).allow(''), header: joi.record(joi.string().max(10_000)) })
    .unknown(true)
    .required();

/** Finds the server of a repository: over https beside it, over ssh where the repository's server says. @throws DeploymentFailed FETCH_FAILED; REPOSITORY_REFUSED 42250 */
export async function findEndpoint(git: Git, remote: Remote, signal: AbortSignal): Promise<Endpoint> {
    return remote.address.scheme === 'ssh'
        ? askOverSsh(git, remote, signal)
        : { url: besides(remote.address.url), headers: authorizationOf(remote.credentials) };
}

const besides = (url: string): string => `${url.replace(/(?:\.git)?\/*$/, '')}.git/info/lfs`;

/** The path of a repository as its server gets it from git, without a leading slash for `user@host:path`. */
function pathOf({ url }: Address): string {
    return url.startsWith('ssh://') ? new URL(url).pathname : url.slice(url.indexOf(':') + 1);
}

async function askOverSsh(git: Git, remote: Remote, signal: AbortSignal): Promise<Endpoint> {
    const path = pathOf(remote.address);
    const said = await git.runOnServer(remote, `git-lfs-authenticate ${path} download`, signal);
    const { error, value } = schema.validate(readObject(said)) as {
        error?: Error;
        value: { readonly href?: string; readonly header?: Readonly<Record<string, string>> };
    };
    if (error !== undefined) {
        throw new DeploymentFailed(
            'FETCH_FAILED',
            `Git LFS: the answer of git-lfs-authenticate cannot be read: ${error.message}`
        );
    }
    const { href = '', header = {} } = value;
    const url = href === '' ? besides(`https://${remote.address.host}/${path.replace(/^\/+/, '')}`) : href;
    // The same rule as for repositories: without TLS only an inner address that was granted.
    await git.open({ address: parseAddress(url), credentials: null });
    return { url: url.replace(/\/+$/, ''), headers: header };
}

function readObject(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        return text.trim().slice(0, 200);
    }
}
