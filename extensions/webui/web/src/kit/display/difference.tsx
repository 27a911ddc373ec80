import { differences, isEmpty, textOf } from '../../schema/differences.ts';
import { inWords } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

/** Shows what differs between two states, each field with its old and its new value. */
export function Differences({
    before,
    after,
    titles = {}
}: {
    readonly before: unknown;
    readonly after: unknown;
    /** Labels of top-level fields; others are their key in words. */
    readonly titles?: Readonly<Record<string, string>>;
}) {
    const all = differences(before, after);
    if (all.length === 0) {
        return <p class="dim">{t('Nothing differs')}</p>;
    }
    return (
        <dl class="difference">
            {all.map(({ path, before: old, after: next }) => (
                <Line key={path.join('.')} title={titleOf(path, titles)} old={old} next={next} />
            ))}
        </dl>
    );
}

function Line({
    title,
    old,
    next
}: {
    readonly title: string;
    readonly old: unknown;
    readonly next: unknown;
}) {
    return (
        <>
            <dt>{title}</dt>
            <dd>
                {isEmpty(old) ? null : (
                    <del>
                        <span class="offscreen">{t('before:')} </span>
                        {textOf(old)}
                    </del>
                )}
                {isEmpty(next) ? (
                    <small>{t('removed')}</small>
                ) : (
                    <ins>
                        <span class="offscreen">{t('after:')} </span>
                        {textOf(next)}
                    </ins>
                )}
            </dd>
        </>
    );
}

function titleOf(path: readonly string[], titles: Readonly<Record<string, string>>): string {
    return path
        .map(
            (key, index) =>
                (index === 0 ? titles[key] : undefined) ?? (/^\d+$/.test(key) ? key : inWords(key))
        )
        .join(' › ');
}
