/** Who gets in: the rules in the engine's order, for an imaginary visitor. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { Badge } from '../../kit/display/value.tsx';
import { filled } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

interface Verdict {
    /** Null: another service decides. */
    readonly allowed: boolean | null;
    readonly status: number | null;
    readonly steps: readonly { readonly rule: string; readonly outcome: string; readonly evidence: string }[];
}

/** The question and its answer. */
export function Admission({ id }: { readonly id: number }) {
    const [verdict, setVerdict] = useState<Verdict | null>(null);
    const schema: Schema = {
        properties: {
            ip: { type: 'string', title: t('Address of the visitor'), examples: ['203.0.113.7'] },
            user: { type: 'string', title: t('User name') },
            password: { type: 'string', format: 'password', title: t('Password') }
        },
        required: ['ip']
    };
    return (
        <div class="columns wide">
            <section class="card">
                <h2>{t('Try a visitor')}</h2>
                <p class="dim">{t('No request is sent: the rules are read in the order of the engine.')}</p>
                <SchemaForm
                    schema={schema}
                    initial={{}}
                    action={t('Who gets in?')}
                    onSend={async (value) => {
                        const body = filled(value);
                        setVerdict(
                            (await call<Verdict>('POST', `/api/hosts/${id}/access/check`, { body })).data
                        );
                    }}
                />
            </section>
            {verdict === null ? null : <Answer verdict={verdict} />}
        </div>
    );
}

function Answer({ verdict: { allowed, status, steps } }: { readonly verdict: Verdict }) {
    const text =
        allowed === null ? t('Another service decides') : allowed ? t('Gets in') : t('Does not get in');
    return (
        <section class="card" role="status">
            <h2>
                {text}
                {status === null ? '' : ` (${status})`}
            </h2>
            <ol class="bare lined">
                {steps.map(({ rule, outcome, evidence }) => (
                    <li key={rule}>
                        <div class="fill">
                            <strong>{t(rule)}</strong>
                            <p class="dim">{evidence}</p>
                        </div>
                        <Badge
                            text={outcome}
                            tone={outcome === 'passed' ? 'good' : outcome === 'refused' ? 'bad' : 'busy'}
                        />
                    </li>
                ))}
            </ol>
        </section>
    );
}
