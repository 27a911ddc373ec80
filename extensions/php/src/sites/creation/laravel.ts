/** Laravel in a new site: Composer makes the project as the account of the site, and its `public` becomes the served folder. */
import { errors } from '@portico/sdk';

import { fail } from '../../errors.ts';
import type { FileOwners } from '../../sandbox/owner.ts';
import type { Ctx } from '../../settings.ts';
import type { Tools } from '../../tools/tools.ts';
import type { Releases } from '../../versions/releases.ts';
import type { Site } from '../site.ts';

const skeleton = 'laravel/laravel';
const servedFolder = 'public';
/** Composer makes a project in a folder that is not there yet. */
const draft = 'private/tmp/laravel';
/** What a project of Laravel has, whatever its release. */
const marks = ['artisan', `${servedFolder}/index.php`, 'bootstrap/cache', 'storage', '.env'];

/** Sets Laravel up in a new site. */
export class Laravel {
    readonly #ctx: Ctx;
    readonly #releases: Releases;
    readonly #owners: FileOwners;
    readonly #tools: Tools;

    constructor(ctx: Ctx, releases: Releases, owners: FileOwners, tools: Tools) {
        this.#ctx = ctx;
        this.#releases = releases;
        this.#owners = owners;
        this.#tools = tools;
    }

    /** @throws TOOL_MISSING 50302 when something that it needs is not there, VALIDATION_FAILED 40001 for another served folder */
    async requireParts(root: string, release: string): Promise<void> {
        if (root.split('/').at(-1) !== servedFolder) {
            throw errors.invalid([{ path: 'root', message: `Laravel serves its folder ${servedFolder}` }]);
        }
        await this.#tools.composer(release, '/', []);
        const { code } = await this.#ctx.exec(
            await this.#releases.cli(release),
            ['-r', `exit(extension_loaded('mbstring') && extension_loaded('dom') ? 0 : 1);`],
            { cwd: '/', timeoutSeconds: 10 }
        );
        if (code !== 0) {
            throw errors.toolMissing(
                'mbstring and dom',
                `apt-get install php${release}-mbstring php${release}-xml`
            );
        }
    }

    /** Puts Laravel into a site that has its folders, and its database where it was to have one. @throws TOOL_FAILED 42253 */
    async install(
        site: Site,
        run: { readonly signal: AbortSignal; readonly log: (line: string) => void }
    ): Promise<void> {
        const prepared = await this.#tools.composer(site.release, `${site.folder}/private/tmp`, [
            'create-project',
            '--no-dev',
            '--prefer-dist',
            '--no-progress',
            ...repositoryOptions(this.#ctx.settings.composerRepository),
            skeleton,
            `${site.folder}/${draft}`
        ]);
        run.log('Composer makes the project');
        // In production, Laravel does not migrate a database without being asked once more.
        await this.#tools.run(site, 'composer', { ...prepared, env: { APP_ENV: 'local' } }, run);
        await this.#requireMarks(site);
        await this.#harden(site);
        await this.#place(site);
        await this.#owners.repair(site, run.signal, run.log);
    }

    async #requireMarks({ folder }: Site): Promise<void> {
        const files = this.#ctx.files(folder);
        for (const mark of marks) {
            const found = await files.stat(`${draft}/${mark}`).catch(() => null);
            if (found === null) {
                throw fail.TOOL_FAILED({
                    tool: 'Laravel',
                    why: `the project of Composer has no ${mark}`
                });
            }
        }
    }

    /** A new project shows its errors, with the values of its environment, to every visitor. */
    async #harden({ folder, domain, ssl }: Site): Promise<void> {
        const values = {
            APP_ENV: 'production',
            APP_DEBUG: 'false',
            APP_URL: `${ssl ? 'https' : 'http'}://${domain}`
        };
        const files = this.#ctx.files(folder);
        const path = `${draft}/.env`;
        const reader = await files.open(path);
        let text: string;
        try {
            text = await reader.readFile('utf8');
        } finally {
            await reader.close();
        }
        for (const [name, value] of Object.entries(values)) {
            const line = new RegExp(`^${name}=.*$`, 'm');
            text = line.test(text) ? text.replace(line, `${name}=${value}`) : `${text}\n${name}=${value}\n`;
        }
        const writer = await files.open(path, 'w');
        try {
            await writer.writeFile(text);
        } finally {
            await writer.close();
        }
    }

    /** Moves what is in the draft to its place: the served folder is there already. */
    async #place({ folder, root }: Site): Promise<void> {
        const files = this.#ctx.files(folder);
        const around = root.split('/').slice(0, -1).join('/');
        const into = (target: string, name: string): string => (target === '' ? name : `${target}/${name}`);
        const moves = [
            { from: `${draft}/${servedFolder}`, to: root },
            { from: draft, to: around }
        ];
        for (const { from, to } of moves) {
            for (const { name } of await files.list(from)) {
                if (from !== draft || name !== servedFolder) {
                    await files.move(`${from}/${name}`, into(to, name));
                }
            }
        }
        await files.remove(draft, { recursive: true });
    }
}

/** The project keeps the repository: what it requires later comes from there, too. */
function repositoryOptions(repository: string | undefined): readonly string[] {
    if (repository === undefined) {
        return [];
    }
    const url = repository.startsWith('/') ? `file://${repository}` : repository;
    return [`--repository=${JSON.stringify({ type: 'composer', url })}`, '--add-repository'];
}
