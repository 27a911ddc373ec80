import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Script } from '../../../../../extensions/database/src/dumps/script/script.ts';
import type { KindName } from '../../../../../extensions/database/src/kinds/kind.ts';

export const lab = Lab.script();
const { describe, it } = lab;

async function* pieces(text: string, size: number): AsyncGenerator<Buffer> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
    }
}

/** All statements, and the data of COPY behind its own. The size of the pieces must not matter. */
async function read(kind: KindName, text: string): Promise<string[]> {
    const all: string[][] = [];
    for (const size of [1, 2, 3, 7, 1_000]) {
        const found: string[] = [];
        for await (const item of new Script(kind, pieces(text, size)).items()) {
            found.push(item.sql);
            if (item.type === 'copy') {
                const data: Buffer[] = [];
                for await (const chunk of item.data) {
                    data.push(chunk);
                }
                found.push(Buffer.concat(data).toString());
            }
        }
        all.push(found);
    }
    for (const found of all) {
        expect(found).to.equal(all[0] as string[]);
    }
    return all[0] as string[];
}

describe('Script', () => {
    it('takes what stands in texts, names and comments for no end of a statement', async () => {
        expect(
            await read(
                'mysql',
                `insert into t values ('a;\\';b', "c;""d", 'ü;'); -- x;\n# y;\n/* z; */ select \`a;b\`;;\nselect 5--1`
            )
        ).to.equal([
            `insert into t values ('a;\\';b', "c;""d", 'ü;')`,
            '/* z; */ select `a;b`',
            'select 5--1'
        ]);
        expect(
            await read(
                'postgresql',
                `select 'a\\';select E'b\\';c';select $$d;$x$;$$;select $t$;$$;$t$;/* /* ; */ ; */select "e;""f", a$1;\nselect 1`
            )
        ).to.equal([
            "select 'a\\'",
            "select E'b\\';c'",
            'select $$d;$x$;$$',
            'select $t$;$$;$t$',
            '/* /* ; */ ; */select "e;""f", a$1',
            'select 1'
        ]);
        expect(await read('postgresql', `select E'it''s \\';';select 'a''\\';select 1`)).to.equal([
            `select E'it''s \\';'`,
            `select 'a''\\'`,
            'select 1'
        ]);
    });

    it('reads a statement that is longer than its pieces', async () => {
        const row = `('${"it''s; a \\\\ long text ".repeat(20)}', -1)`;
        const sql = `insert into t values ${Array.from({ length: 50 }, () => row).join(',')}`;
        expect(await read('mysql', `${sql};\n${sql}`)).to.equal([sql, sql]);
    });

    it('reads what dump tools write: delimiters, data of COPY, and marks', async () => {
        expect(
            await read(
                'mysql',
                '/*M!999999\\- enable the sandbox mode */;\nDELIMITER ;;\ncreate trigger t begin a; b; end ;;\nDELIMITER ;\nselect 1;\n'
            )
        ).to.equal([
            '/*M!999999\\- enable the sandbox mode */',
            'create trigger t begin a; b; end',
            'select 1'
        ]);
        expect(
            await read(
                'postgresql',
                "\\restrict abc123\nset x = 1;\nCOPY public.t (a, b) FROM stdin;\n1\t\\N\nit's; \\\\.\n\\.\n\nCOPY public.e FROM stdin;\n\\.\nselect 2;\n\\unrestrict abc123\n"
            )
        ).to.equal([
            'set x = 1',
            'COPY public.t (a, b) FROM stdin',
            "1\t\\N\nit's; \\\\.\n",
            'COPY public.e FROM stdin',
            '',
            'select 2'
        ]);
    });

    for (const [kind, text] of [
        ['mysql', 'select 1;\n\\! id'],
        ['mysql', 'select 1 \\! id\n;'],
        ['mysql', 'source /etc/passwd\n'],
        ['mysql', 'system id;'],
        ['mysql', 'TEE /tmp/x\n'],
        ['mysql', '\\. /etc/passwd'],
        ['postgresql', '\\! id'],
        ['postgresql', "select 1 \\g '|id'"],
        ['postgresql', "\\copy t from '/etc/passwd'"],
        ['postgresql', '\\o /tmp/x\nselect 1;'],
        ['postgresql', '\\restrict x; \\! id'],
        ['postgresql', 'copy t from stdin;\n1\n\\.\n\\! id\n']
    ] as const) {
        it(`refuses commands of client programs: ${kind}, ${JSON.stringify(text)}`, async () => {
            await expect(read(kind, text)).to.reject(/command for a client program/);
        });
    }

    it('says that a file ends within the data of a COPY', async () => {
        await expect(read('postgresql', 'copy t from stdin;\n1\n2\n')).to.reject();
    });
});
