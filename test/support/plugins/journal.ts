/** A plugin that takes part in exports and imports with settings, secrets and a table. A file beside its code tells it how to fail. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The capabilities that it asks for. */
export const journalCapabilities = { taps: ['export.collect', 'import.restore'] };

/** How its taps fail. `kills` ends the process once. */
export interface JournalFault {
    readonly collect?: 'throws' | 'hangs' | 'big' | 'date' | 'twice' | 'nothing' | 'partly' | 'odd';
    readonly restore?: 'throws' | 'hangs' | 'refuses' | 'kills';
}

/** Sets how the copy in this folder fails from now on. */
export function setJournalFault(folder: string, fault: JournalFault): void {
    writeFileSync(join(folder, 'fault.json'), JSON.stringify(fault));
}

/** The code of its module. */
export const journalCode = `import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { definePlugin, joi } from '@portico/sdk';

const fault = (name) => {
    try {
        return JSON.parse(readFileSync(join(import.meta.dirname, 'fault.json'), 'utf8'))[name] ?? null;
    }
    catch {
        return null;
    }
};
const never = () => new Promise(() => undefined);

export default definePlugin({
    settings: joi.object({
        greeting: joi.string().max(20).default('Hello'),
        token: joi.secret().pattern(/^[a-z0-9-]+$/),
        mail: joi.object({ host: joi.string().required(), password: joi.secret() }),
        accounts: joi.array().items(joi.object({ name: joi.string().required(), key: joi.secret().required() })).default([])
    }),
    migrations: [{ name: '0001', up: ['create table note (id integer primary key, text text not null)'] }],
    setup(ctx) {
        const rows = () => ctx.db.read((em) => em.execute('select id, text from note order by id'));
        ctx.route({ method: 'GET', path: '/settings', access: 'write', handler: () => structuredClone(ctx.settings) });
        ctx.route({ method: 'GET', path: '/notes', access: 'read', handler: async () => (await rows()).map(({ text }) => text) });
        ctx.route({ method: 'POST', path: '/notes', access: 'write', validate: { payload: joi.object({ text: joi.string().required() }) }, handler: async ({ payload }) => {
            await ctx.db.write((em) => em.execute('insert into note (text) values (?)', [payload.text]));
            return null;
        } });
        ctx.hooks.tap('export.collect', async ({ maxBytes }) => {
            switch (fault('collect')) {
                case 'throws': throw new Error('the journal is locked');
                case 'hangs': return never();
                case 'big': return [{ name: 'notes', data: 'x'.repeat(maxBytes) }];
                case 'date': return [{ name: 'notes', data: { at: new Date(0) } }];
                case 'twice': return [{ name: 'notes', data: 1 }, { name: 'notes', data: 2 }];
                case 'nothing': return undefined;
                case 'partly': return [{ name: 'notes', data: [], leftOut: ['the drafts', 'the pictures'] }];
                case 'odd': return [{ name: 'notes', data: [], leftOut: 'the drafts' }];
                default: return [{ name: 'notes', data: (await rows()).map(({ id, text }) => ({ id, text })) }];
            }
        });
        ctx.hooks.tap('import.restore', async ({ items, mode, version }) => {
            switch (fault('restore')) {
                case 'throws': throw new Error('the journal is full');
                case 'hangs': return never();
                case 'refuses': return [{ item: 'notes', ok: false, message: 'written by ' + version + ', which is too old' }];
                case 'kills':
                    writeFileSync(join(import.meta.dirname, 'fault.json'), '{}');
                    process.kill(process.pid, 'SIGKILL');
                    return never();
            }
            await ctx.db.write(async (em) => {
                if (mode === 'replace') {
                    await em.execute('delete from note');
                }
                for (const { id, text } of items.find(({ name }) => name === 'notes').data) {
                    await em.execute('insert or replace into note (id, text) values (?, ?)', [id, text]);
                }
            });
            return items.map(({ name }) => ({ item: name, ok: true }));
        });
    }
});
`;
