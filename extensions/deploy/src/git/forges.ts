/** The APIs of forges: lists of repositories, statuses of commits, comments on pull requests. */
import { errors, joi } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { readJson } from './answers.ts';
import type { Address } from './remote/address.ts';

/** Forges whose API is known. */
export type ForgeKind = 'github' | 'gitlab' | 'gitea';

/** How the API of a forge is reached. */
export interface ForgeAccess {
    readonly kind: ForgeKind;
    /** Without a slash at the end. */
    readonly api: string;
    /** Null: as everyone. */
    readonly token: string | null;
    /** The token is one of an installation of a GitHub App, which has a list of its own. */
    readonly isApp: boolean;
}

/** A repository as a forge lists it. */
export interface ForgeRepository {
    readonly name: string;
    readonly url: string;
    readonly branch: string | null;
    readonly isPrivate: boolean;
}

/** How a check of a commit stands. */
export type CheckState = 'success' | 'failure' | 'pending';

const seconds = 20;
const mostBytes = 8 * 2 ** 20;
const pageSize = 100;
/** A forge may give fewer on a page than it is asked for. */
const mostPages = 20;
const good = new Set(['success', 'neutral', 'skipped']);
const waiting = new Set(['pending', 'running', 'created', 'waiting_for_resource', 'preparing', 'scheduled']);

const text = joi.string().allow('', null);
const repositories = joi.array().items(
    joi
        .object({
            full_name: text,
            path_with_namespace: text,
            clone_url: text,
            http_url_to_repo: text,
            default_branch: text,
            private: joi.boolean(),
            visibility: text
        })
        .unknown(true)
);
const lists = joi
    .alternatives(repositories, joi.object({ repositories: repositories.required() }).unknown(true))
    .required();
const named = joi
    .object({ name: text, context: text, state: text, status: text, conclusion: text })
    .unknown(true);
const statuses = joi
    .alternatives(
        joi.array().items(named),
        joi.object({ check_runs: joi.array().items(named).required() }).unknown(true),
        joi.object({ statuses: joi.array().items(named).allow(null).required() }).unknown(true)
    )
    .required();
const made = joi.object({ id: joi.number().integer().required() }).unknown(true).required();

/** A list entry of any of the forges. */
interface Listed {
    readonly full_name?: string | null;
    readonly path_with_namespace?: string | null;
    readonly clone_url?: string | null;
    readonly http_url_to_repo?: string | null;
    readonly default_branch?: string | null;
    readonly private?: boolean;
    readonly visibility?: string | null;
}
/** A check of any of the forges. */
interface Named {
    readonly name?: string | null;
    readonly context?: string | null;
    readonly state?: string | null;
    readonly status?: string | null;
    readonly conclusion?: string | null;
}

/** The forge of a host, as far as its name says it. */
export function forgeOfHost(host: string): ForgeKind | null {
    return host === 'github.com' ? 'github' : host === 'gitlab.com' ? 'gitlab' : null;
}

/** Where the API of a forge usually is. */
export function apiOf(kind: ForgeKind, host: string): string {
    const paths = { github: '/api/v3', gitlab: '/api/v4', gitea: '/api/v1' };
    return kind === 'github' && host === 'github.com'
        ? 'https://api.github.com'
        : `https://${host}${paths[kind]}`;
}

/** Asks forges. Each call fails with FORGE_FAILED 50250 when the forge gives no answer that can be read. */
export class Forges {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Repositories that the token reaches and whose name holds a text, of the first {@link mostPages} pages of the forge. */
    async repositories(access: ForgeAccess, query: string): Promise<readonly ForgeRepository[]> {
        const all: Listed[] = [];
        for (let page = 1, size = 0; page <= mostPages; page += 1) {
            const found = await this.#repositoriesOn(page, access, query);
            all.push(...found);
            size = Math.max(size, found.length);
            if (found.length === 0 || found.length < size) {
                break;
            }
        }
        return all
            .map((each) => ({
                name: each.full_name ?? each.path_with_namespace ?? '',
                url: each.clone_url ?? each.http_url_to_repo ?? '',
                branch: each.default_branch ?? null,
                isPrivate: each.private ?? each.visibility !== 'public'
            }))
            .filter(({ name }) => name.toLowerCase().includes(query.toLowerCase()));
    }

    async #repositoriesOn(page: number, access: ForgeAccess, query: string): Promise<readonly Listed[]> {
        const paging = `per_page=${pageSize}&limit=${pageSize}&page=${page}`;
        const path =
            access.kind === 'gitlab'
                ? `/projects?membership=true&${paging}&search=${encodeURIComponent(query)}`
                : access.isApp
                  ? `/installation/repositories?${paging}`
                  : `/user/repos?${paging}&sort=pushed`;
        const body = (await this.#ask(access, 'GET', path, lists)) as
            readonly Listed[] | { readonly repositories: readonly Listed[] };
        return 'repositories' in body ? body.repositories : body;
    }

    /** The checks of a commit by their names; of two with one name the worse. */
    async checks(
        access: ForgeAccess,
        address: Address,
        commit: string
    ): Promise<ReadonlyMap<string, CheckState>> {
        const top = repositoryPath(access.kind, address);
        const paths =
            access.kind === 'gitlab'
                ? [`${top}/repository/commits/${commit}/statuses?per_page=${pageSize}`]
                : access.kind === 'gitea'
                  ? [`${top}/commits/${commit}/status?limit=${pageSize}`]
                  : [
                        `${top}/commits/${commit}/check-runs?per_page=${pageSize}`,
                        `${top}/commits/${commit}/status?per_page=${pageSize}`
                    ];
        const found = new Map<string, CheckState>();
        for (const path of paths) {
            const body = (await this.#ask(access, 'GET', path, statuses)) as
                | readonly Named[]
                | { readonly check_runs?: readonly Named[]; readonly statuses?: readonly Named[] | null };
            const all: readonly Named[] = 'length' in body ? body : (body.check_runs ?? body.statuses ?? []);
            for (const each of all) {
                const name = each.context ?? each.name ?? '';
                const state = stateOf(each);
                const before = found.get(name);
                const isWorse = before === undefined || before === 'success' || state === 'failure';
                found.set(name, isWorse ? state : before);
            }
        }
        return found;
    }

    /** Writes a comment on a pull request, or changes it. Resolves with its id. */
    async comment(
        access: ForgeAccess,
        address: Address,
        { number, body, id }: { readonly number: number; readonly body: string; readonly id: number | null }
    ): Promise<number> {
        const top = repositoryPath(access.kind, address);
        const list =
            access.kind === 'gitlab'
                ? `${top}/merge_requests/${number}/notes`
                : `${top}/issues/${number}/comments`;
        const one = access.kind === 'gitlab' ? list : `${top}/issues/comments`;
        const [method, path] =
            id === null
                ? (['POST', list] as const)
                : ([access.kind === 'gitlab' ? 'PUT' : 'PATCH', `${one}/${id}`] as const);
        const answer = (await this.#ask(access, method, path, made, { body })) as { readonly id: number };
        return answer.id;
    }

    async #ask(
        { kind, api, token }: ForgeAccess,
        method: 'GET' | 'POST' | 'PUT' | 'PATCH',
        path: string,
        schema: { validate(value: unknown): { readonly error?: Error | undefined; readonly value: unknown } },
        payload?: object
    ): Promise<unknown> {
        const answer = await this.#ctx
            .fetch(api + path, {
                method,
                // The token goes to the address that the admin named, and nowhere else.
                redirect: 'error',
                signal: AbortSignal.any([this.#ctx.signal, AbortSignal.timeout(seconds * 1_000)]),
                headers: {
                    accept: kind === 'github' ? 'application/vnd.github+json' : 'application/json',
                    'user-agent': 'portico-deploy',
                    ...(token === null
                        ? {}
                        : { authorization: kind === 'gitea' ? `token ${token}` : `Bearer ${token}` }),
                    ...(payload === undefined ? {} : { 'content-type': 'application/json' })
                },
                ...(payload === undefined ? {} : { body: JSON.stringify(payload) })
            })
            .catch((error: unknown) => {
                throw fail.FORGE_FAILED({ why: (error as Error).message });
            });
        const body = await readJson(answer, mostBytes);
        if (!answer.ok) {
            throw fail.FORGE_FAILED({ why: `it answered ${answer.status}` });
        }
        const { error, value } = schema.validate(body);
        if (error !== undefined) {
            throw fail.FORGE_FAILED({ why: `its answer cannot be read: ${error.message}` });
        }
        return value;
    }
}

/** The path of a repository in the API. @throws VALIDATION_FAILED 40001 for an address that names none */
function repositoryPath(kind: ForgeKind, { url, scheme }: Address): string {
    const path = scheme === 'ssh' && !url.includes('://') ? url.split(':')[1] : new URL(url).pathname;
    const name = (path ?? '').replace(/^\/+/, '').replace(/\.git$/, '');
    const parts = name.split('/').filter((part) => part !== '');
    if (parts.length < 2) {
        throw errors.invalid([{ path: 'source.url', message: 'It names no owner and repository' }]);
    }
    return kind === 'gitlab'
        ? `/projects/${encodeURIComponent(parts.join('/'))}`
        : `/repos/${parts.map(encodeURIComponent).join('/')}`;
}

/** GitHub's check runs have a conclusion once they are completed; statuses have a state, at Gitea and GitLab named `status`. */
function stateOf({ state, status, conclusion }: Named): CheckState {
    if (conclusion !== undefined && conclusion !== null) {
        return good.has(conclusion) ? 'success' : 'failure';
    }
    const said = state ?? status ?? 'pending';
    if (good.has(said)) {
        return 'success';
    }
    return waiting.has(said) || said === 'queued' || said === 'in_progress' || said === 'requested'
        ? 'pending'
        : 'failure';
}
