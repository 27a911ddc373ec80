import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { openPluginDatabase } from '../../../core/src/plugins/runtime/database.ts';
import { entities, migrations, PreviewEntity } from '../../../extensions/deploy/src/entities.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** Projects by where their pull requests are: what they are fetched from, and the forge that their connection names, if they have one. */
const projects = [
    { url: 'https://gitlab.com/acme/shop.git', refs: 'merge-requests' },
    { url: 'git@gitlab.example:acme/shop.git', refs: 'merge-requests' },
    { url: 'ssh://git@gitlab.example:2222/acme/shop.git', refs: 'merge-requests' },
    { url: 'https://git.example/acme/shop.git', forge: 'gitlab', refs: 'merge-requests' },
    { url: 'https://gitlab.example/acme/shop.git', forge: 'gitea', refs: 'pull' },
    { url: 'https://git.example/acme/shop.git', forge: null, refs: 'pull' },
    { url: 'https://github.com/acme/gitlab.com.git', refs: 'pull' },
    { url: 'https://git.example/acme/shop.git', refs: 'pull' }
] as const;

/** Writes projects with a preview each, as the version with these migrations alone did. */
function write(file: string): void {
    const database = new DatabaseSync(file);
    projects.forEach((each, index) => {
        const id = index + 1;
        const connection = 'forge' in each ? id : null;
        if ('forge' in each) {
            database
                .prepare('insert into deploy_connections values (?, 1, ?, ?, ?)')
                .run(id, `c${id}`, JSON.stringify({ kind: 'token', forge: each.forge }), 'sealed');
        }
        database
            .prepare(
                'insert into deploy_projects (id, version, name, config, stopped, last_number, created_at) values (?, 1, ?, ?, 0, 0, 0)'
            )
            .run(id, `p${id}`, JSON.stringify({ source: { url: each.url, connection } }));
        database
            .prepare(
                `insert into deploy_previews (id, project_id, number, branch, fork, "commit", closed, domain, expires_at)
                values (?, ?, 7, 'feature', 1, ?, 0, ?, 0)`
            )
            .run(id, id, 'a'.repeat(40), `pr-7.p${id}.test`);
    });
    database.close();
}

describe('migrations', () => {
    let dataDir: string;

    before(() => {
        dataDir = mkdtempSync(join(tmpdir(), 'portico-deploy-'));
    });
    after(() => rmSync(dataDir, { recursive: true, force: true }));

    const refs = async (most: number): Promise<readonly string[]> => {
        const db = await openPluginDatabase({ dataDir, entities, migrations: migrations.slice(0, most) });
        try {
            return (await db.read((em) => em.find(PreviewEntity, {}, { orderBy: { id: 'asc' } }))).map(
                ({ ref }) => ref
            );
        } finally {
            await db.close();
        }
    };

    it('give previews of older versions the ref that their forge has', async () => {
        await (await openPluginDatabase({ dataDir, entities, migrations: migrations.slice(0, 2) })).close();
        write(join(dataDir, 'data.db'));
        expect(new Set(await refs(3)), 'as the version before wrote them').to.equal(
            new Set(['refs/pull/7/head'])
        );
        expect(await refs(migrations.length)).to.equal(projects.map((each) => `refs/${each.refs}/7/head`));
    });
});
