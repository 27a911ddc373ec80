/** One comment on each pull request that has a preview, kept up to date. */
import type { Project, Store } from '../deployments/store.ts';
import type { Connections } from '../git/connections.ts';
import type { Forges } from '../git/forges.ts';
import { parseAddress } from '../git/remote/address.ts';
import type { Ctx } from '../settings.ts';
import type { Preview, PreviewStore } from './store.ts';

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly connections: Connections;
    readonly forges: Forges;
    readonly previews: PreviewStore;
}

const words = {
    'awaiting-approval': 'waits until an admin approves this commit.',
    building: 'is being built.',
    live: 'serves.',
    failed: 'failed.',
    closed: 'is over.'
} as const;

/** Writes comments. A forge that does not take one is told by the log, and stops nothing. */
export class Comments {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Says on the pull request how its preview stands, where the project wants that and has a connection. */
    async write({ config, name }: Project, preview: Preview): Promise<void> {
        const { ctx, connections, forges, previews } = this.#parts;
        if (config.previews?.comment !== true || config.source.connection === null) {
            return;
        }
        try {
            const access = await connections.forgeOf(config.source);
            if (access?.token == null) {
                return;
            }
            const { number, commentId: id } = preview;
            const comment = { number, id, body: await this.#text(name, config.host?.ssl === true, preview) };
            const commentId = await forges.comment(access, parseAddress(config.source.url), comment);
            await previews.change(preview.id, { commentId });
        } catch (error) {
            ctx.log.warn('A comment on a pull request could not be written', {
                project: name,
                error: (error as Error).message
            });
        }
    }

    async #text(
        name: string,
        ssl: boolean,
        { state, commit, domain, deploymentId }: Preview
    ): Promise<string> {
        const reason =
            deploymentId === null ? null : (await this.#parts.store.deployment(deploymentId)).reason;
        const where = state === 'live' ? `\n\n${ssl ? 'https' : 'http'}://${domain}/` : '';
        const why = state === 'failed' && reason !== null ? ` Reason: \`${reason}\`.` : '';
        return `**${name}**: the preview of \`${commit}\` ${words[state]}${why}${where}`;
    }
}
