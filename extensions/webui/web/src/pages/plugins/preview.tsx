/** What an install, an upgrade or a way back would do: shown before it is done. */
import { Badge } from '../../kit/display/value.tsx';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { InstallPreview } from './plugin-view.ts';

/** The facts of the package, what it asks for beyond what it has, and what stands in its way. */
export function Preview({ preview }: { readonly preview: InstallPreview }) {
    const { title, version, from, signature, provenance, bytes, dependencies, added, removed, consent } =
        preview;
    return (
        <>
            <dl class="facts">
                <Fact title={t('Package')} text={preview.package} />
                <Fact title={t('Version')} text={from === null ? version : `${from} → ${version}`} />
                <Fact title={t('Size')} text={quantity(bytes, 'byte')} />
                <div>
                    <dt>{t('Signature')}</dt>
                    <dd>
                        <Badge text={signature} tone={signature === 'verified' ? 'good' : 'warning'} />
                    </dd>
                </div>
                {provenance === null ? null : <Fact title={t('Built at')} text={provenance} />}
                {dependencies === null || dependencies.length === 0 ? null : (
                    <Fact
                        title={t('Comes with')}
                        text={dependencies.map((each) => `${each.package} ${each.version}`).join(', ')}
                    />
                )}
            </dl>
            {preview.obstacles.map(({ code, message }) => (
                <div key={code} class="banner bad" role="alert">
                    <div>{message}</div>
                </div>
            ))}
            <section>
                <h3>
                    {from === null
                        ? t('{title} asks for this', { title })
                        : t('{title} asks for more than it has', { title })}
                </h3>
                {consent.length === 0 ? (
                    <p class="dim">{t('Nothing of the machine')}</p>
                ) : (
                    <ul class="bare lined">
                        {consent.map(({ capability, title: words, scope }) => (
                            <li key={capability}>
                                <div class="fill">
                                    <strong>{t(words)}</strong>
                                    {scope === '' ? null : <p class="dim">{scope}</p>}
                                </div>
                                {isWide(capability, preview.capabilities.missing?.[capability]) ? (
                                    <Badge text="far-reaching" tone="warning" />
                                ) : null}
                            </li>
                        ))}
                    </ul>
                )}
            </section>
            <Names title={t('New permissions')} names={added} />
            <Names title={t('Permissions that go')} names={removed} />
        </>
    );
}

/** `*` stands for everything, and `direct` goes past the panel. */
export function isWide(capability: string, value: unknown): boolean {
    return capability === 'direct' || (Array.isArray(value) && value.includes('*'));
}

function Fact({ title, text }: { readonly title: string; readonly text: string }) {
    return (
        <div>
            <dt>{title}</dt>
            <dd>{text}</dd>
        </div>
    );
}

function Names({ title, names }: { readonly title: string; readonly names: readonly string[] }) {
    return names.length === 0 ? null : (
        <p>
            {title}:{' '}
            {names.map((name) => (
                <span key={name}>
                    <code>{name}</code>{' '}
                </span>
            ))}
        </p>
    );
}
