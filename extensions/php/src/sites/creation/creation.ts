/** Making sites and taking them away. Both can be cut at any moment: what is half done is taken back whole at the next start. */
import { randomBytes } from 'node:crypto';

import { type Actor, errors, isFailure, messageOf, type TaskRun } from '@portico/sdk';

import type { Configurations } from '../../config/configurations.ts';
import { usualPool } from '../../config/pool.ts';
import type { SslMode, Template } from '../../entities.ts';
import { fail } from '../../errors.ts';
import type { Masters } from '../../fpm/masters.ts';
import type { Machine } from '../../machine.ts';
import type { Ctx } from '../../settings.ts';
import type { Slots } from '../../switching/slots.ts';
import type { Releases } from '../../versions/releases.ts';
import { provision, requireDatabases, takeBackDatabase } from '../data/database.ts';
import type { Account, Accounts } from '../machine/accounts.ts';
import { type Folders, split } from '../machine/folders.ts';
import type { SiteHosts } from '../machine/hosts.ts';
import { checkExtraPaths, checkRoot } from '../machine/paths.ts';
import { accountComment, type Site } from '../site.ts';
import type { Store } from '../store.ts';
import { changedEnv, type EnvInput } from './input.ts';
import type { Laravel } from './laravel.ts';
import { page } from './templates.ts';
import type { WordPress, WordPressInput } from './wordpress.ts';

/** What a site is made of. */
export interface NewSite {
    readonly name: string;
    readonly domain: string;
    readonly aliases?: readonly string[] | undefined;
    readonly release?: string | undefined;
    readonly root?: string | undefined;
    readonly template: Template;
    readonly application?: Application | undefined;
    readonly ssl?: boolean | undefined;
    readonly sslMode?: SslMode | undefined;
    readonly extraPaths?: readonly string[] | undefined;
    readonly env?: EnvInput | undefined;
    readonly database?: { readonly serverId: number; readonly name?: string | undefined } | undefined;
}

/** What is installed into a new site. One that a backup brings back has none: its files come from there. */
export type Application =
    { readonly kind: 'laravel' } | { readonly kind: 'wordpress'; readonly input: WordPressInput };

/** The task in which a site is made. */
export type CreationRun = Pick<TaskRun, 'signal' | 'log' | 'actor'>;

/** A site that was made. */
export interface Created {
    readonly site: Site;
    /** Of WordPress. */
    readonly adminPassword?: string;
}

/** What the making of sites works with. */
export interface CreationParts {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly store: Store;
    readonly releases: Releases;
    readonly accounts: Accounts;
    readonly folders: Folders;
    readonly configurations: Configurations;
    readonly masters: Masters;
    readonly hosts: SiteHosts;
    readonly slots: Slots;
    readonly wordpress: WordPress;
    readonly laravel: Laravel;
}

/** Makes sites and takes them away. */
export class Creation {
    readonly #parts: CreationParts;

    constructor(parts: CreationParts) {
        this.#parts = parts;
    }

    /**
     * Checks what a site is to be made of, and writes it down. Nothing of it is on the machine yet.
     *
     * @throws NOT_ROOT 50350, RELEASE_UNKNOWN 42251, TOOL_MISSING 50302, VALIDATION_FAILED 40001, CONFLICT 40900
     */
    async begin(input: NewSite): Promise<Site> {
        const { ctx, machine, store, releases, accounts, folders } = this.#parts;
        const { name, domain, aliases = [], extraPaths = [], root = 'public', template, database } = input;
        if (!machine.isRoot()) {
            throw fail.NOT_ROOT();
        }
        const release = await releases.choose(input.release);
        const { sitesFolder, runFolder } = ctx.settings;
        const [account, folder] = [`php-${name}`, `${sitesFolder}/${name}`];
        checkRoot(root);
        if (database !== undefined) {
            requireDatabases(ctx);
        }
        await this.#checkApplication(input, root, release.release);
        const env = changedEnv({}, input.env ?? {});
        await checkExtraPaths(ctx, extraPaths, await store.all());
        if ((await accounts.find(account)) !== null || !(await folders.isFree(folder))) {
            throw errors.conflict('name');
        }
        return store.add({
            phase: 'creating',
            name,
            domain,
            aliases: JSON.stringify(aliases),
            release: release.release,
            root,
            template,
            ssl: input.ssl ?? false,
            sslMode: input.sslMode ?? 'auto',
            extraPaths: JSON.stringify(extraPaths),
            env: await sealed(ctx, env),
            envNames: JSON.stringify(Object.keys(env)),
            settings: '{}',
            pool: JSON.stringify(usualPool),
            account,
            token: randomBytes(16).toString('hex'),
            database:
                database === undefined
                    ? null
                    : JSON.stringify({
                          serverId: database.serverId,
                          name: database.name ?? name.replaceAll('-', '_'),
                          account: null
                      }),
            folder,
            runFolder,
            folderMade: true,
            hostId: null,
            slot: 0,
            revision: 1,
            message: null,
            createdAt: Date.now()
        });
    }

    /** Makes a site that was begun; one that fails is taken back whole. */
    async finish(begun: Site, run: CreationRun, application?: Application): Promise<Created> {
        const { log, actor } = run;
        let site = begun;
        try {
            site = await this.#provision(begun, actor, log);
            return await this.#make(site, run, application);
        } catch (error) {
            log(`Taken back, because: ${messageOf(error)}`);
            // A folder that was there before is another's.
            const isForeign = isFailure(error) && error.code === errors.conflict('').code;
            await this.#takeBackDatabase(site, error, actor);
            await this.takeBack(isForeign ? { ...site, folderMade: await this.#isOwnFolder(site) } : site);
            throw error;
        }
    }

    /** Removes a site with its account; its files go only with `deleteFiles`. */
    async remove(site: Site, deleteFiles: boolean): Promise<void> {
        const { store } = this.#parts;
        await this.takeBack(await store.change(site.id, { phase: 'removing', folderMade: deleteFiles }));
    }

    /** Takes back whatever there is of a site. It can be repeated, and be cut at any moment. */
    async takeBack(site: Site): Promise<void> {
        const { accounts, folders, hosts, machine, masters, store } = this.#parts;
        await hosts.remove(site);
        await masters.remove(site, 0);
        await masters.remove(site, 1);
        const account = await accounts.find(site.account);
        if (account?.comment === accountComment(site.token)) {
            await machine.endProcesses(account.uid);
        }
        await folders.removeRun(site);
        if (site.folderMade && (await this.#isOwnFolder(site))) {
            await folders.remove(site.folder);
        } else if (!site.folderMade && (await this.#isOwnFolder(site))) {
            await folders.release(site.folder);
        }
        await accounts.remove(site.account, site.token);
        await store.remove(site.id);
    }

    /** Makes the database of a site, and puts what its scripts need into its environment. */
    async #provision(site: Site, actor: Actor | null, log: (line: string) => void): Promise<Site> {
        const { configurations, ctx, store } = this.#parts;
        if (site.database === null) {
            return site;
        }
        log(`Database ${site.database.name}`);
        const { database, env } = await provision(ctx, site.database, actor);
        try {
            const all = { ...(await configurations.environment(site)), ...env };
            return await store.change(site.id, {
                database: JSON.stringify(database),
                env: await sealed(ctx, all),
                envNames: JSON.stringify(Object.keys(all))
            });
        } catch (error) {
            await takeBackDatabase(ctx, site.name, database, actor);
            throw error;
        }
    }

    /** One that could not be made in the first place is another's, or is not there. */
    async #takeBackDatabase({ name, database }: Site, error: unknown, actor: Actor | null): Promise<void> {
        const isUnmade = database?.account === null && isFailure(error);
        if (database !== null && !isUnmade) {
            await takeBackDatabase(this.#parts.ctx, name, database, actor);
        }
    }

    async #checkApplication(
        { application, database }: NewSite,
        root: string,
        release: string
    ): Promise<void> {
        const { laravel, wordpress } = this.#parts;
        if (application?.kind === 'laravel') {
            await laravel.requireParts(root, release);
        }
        if (application?.kind === 'wordpress') {
            if (database === undefined) {
                throw errors.invalid([{ path: 'database', message: 'WordPress needs a database' }]);
            }
            await wordpress.requireParts(release);
        }
    }

    async #make(
        site: Site,
        { signal, log }: CreationRun,
        application: Application | undefined
    ): Promise<Created> {
        const { accounts, folders, hosts, releases, slots, store } = this.#parts;
        const release = await releases.get(site.release);
        signal.throwIfAborted();
        log(`Account ${site.account}`);
        const account = await accounts.create(site.account, site.folder, site.token);
        signal.throwIfAborted();
        log(`Folder ${site.folder}`);
        await folders.createSite(site, account);
        await this.#fill(site, account);
        signal.throwIfAborted();
        log(`PHP ${release.version}`);
        await slots.startFirst(site);
        await slots.connect(site);
        const adminPassword = await this.#install(site, account, application, { signal, log });
        signal.throwIfAborted();
        log(`Host ${site.domain}`);
        const hostId = await hosts.create(site);
        const made = await store.change(site.id, { hostId, phase: 'ready' });
        return { site: made, ...(adminPassword === null ? {} : { adminPassword }) };
    }

    /** Gives the password of its admin where there is one. */
    async #install(
        site: Site,
        account: Account,
        application: Application | undefined,
        run: Pick<CreationRun, 'signal' | 'log'>
    ): Promise<string | null> {
        const { laravel, wordpress } = this.#parts;
        if (application?.kind === 'wordpress') {
            return wordpress.install(site, account, application.input, run);
        }
        if (application?.kind === 'laravel') {
            await laravel.install(site, run);
        }
        return null;
    }

    async #fill(site: Site, account: Account): Promise<void> {
        const { ctx, folders } = this.#parts;
        const files = ctx.files(site.folder);
        const group = await folders.engineGroup(account);
        let path = '';
        for (const part of site.root.split('/')) {
            path = path === '' ? part : `${path}/${part}`;
            if (path !== 'public') {
                await files.createFolder(path, { mode: 0o700 });
                await files.chown(path, account.uid, group);
                await files.chmod(path, 0o2750);
            }
        }
        if (site.template === 'php') {
            const handle = await files.open(`${site.root}/index.php`, 'wx', 0o640);
            try {
                await handle.writeFile(page);
                await handle.chown(account.uid, group);
            } finally {
                await handle.close();
            }
        }
    }

    /** Whether the folder of a site is the one that this package made for it: its account owns it, or it is still empty and root's. */
    async #isOwnFolder({ folder, account: name, token }: Site): Promise<boolean> {
        const { accounts, ctx } = this.#parts;
        const { parent, name: entry } = split(folder);
        const found = await ctx
            .files(parent)
            .stat(entry)
            .catch(() => null);
        if (found?.type !== 'folder') {
            return false;
        }
        const account = await accounts.find(name);
        if (account?.comment === accountComment(token) && found.uid === account.uid) {
            return true;
        }
        return found.uid === 0 && (await ctx.files(folder).list('')).length === 0;
    }
}

/** An environment as it is stored. */
export async function sealed(ctx: Ctx, env: Readonly<Record<string, string>>): Promise<string> {
    return Object.keys(env).length === 0 ? '' : ctx.secrets.seal(JSON.stringify(env));
}
