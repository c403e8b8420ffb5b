"""The beginning and the end of long output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydantic_ai_skills.execution.process import CapturedOutput, StreamCapture, fit_output, mask


def capture(data: bytes, *, limit: int = 1000, chunk: int = 77) -> StreamCapture:
    stream = StreamCapture(limit)
    for start in range(0, len(data), chunk):
        stream.feed(data[start : start + chunk])
    return stream


@pytest.mark.parametrize('size', [0, 1, 499, 500, 501, 999, 1000])
def test_output_within_the_limit_is_whole(size: int) -> None:
    data = bytes(b'0123456789'[i % 10] for i in range(size))
    assert fit_output(capture(data), capture(b''), limit=1000) == CapturedOutput(
        stdout=data.decode(), stderr='', truncated=False
    )


def test_of_longer_output_the_beginning_and_the_end_are_kept_and_the_cut_is_said() -> None:
    output = fit_output(capture(b'a' * 50_000 + b'z' * 50_000), capture(b''), limit=1000)
    first, note, last = output.stdout.split('\n')
    assert (set(first), set(last)) == ({'a'}, {'z'})
    assert note == f'[… {100_000 - len(first) - len(last):,} bytes left out …]'
    assert output.truncated
    assert 900 < len(output.stdout.encode()) <= 1000


def test_a_flood_on_one_stream_does_not_push_the_other_out() -> None:
    output = fit_output(capture(b'o' * 100_000), capture(b'the error'), limit=1000)
    assert output.stderr == 'the error'
    assert len(output.stdout) > 900
    output = fit_output(capture(b'the answer'), capture(b'e' * 100_000), limit=1000)
    assert output.stdout == 'the answer'
    both = fit_output(capture(b'o' * 100_000), capture(b'e' * 100_000), limit=1000)
    assert abs(len(both.stdout) - len(both.stderr)) < 10


def test_two_streams_that_fit_alone_but_not_together_are_cut() -> None:
    output = fit_output(capture(b'o' * 900), capture(b'e' * 900), limit=1000)
    assert output.truncated
    assert len(output.stdout.encode()) + len(output.stderr.encode()) <= 1000


def test_a_character_that_the_cut_goes_through_is_left_out_whole() -> None:
    for shift in range(4):
        output = fit_output(capture(b'x' * shift + '🦊'.encode() * 10_000), capture(b''), limit=1000)
        assert '\ufffd' not in output.stdout


@given(data=st.binary(max_size=5000), more=st.binary(max_size=5000), chunk=st.integers(1, 3000))
def test_whatever_a_script_prints_fits_the_limit_as_text(data: bytes, more: bytes, chunk: int) -> None:
    output = fit_output(capture(data, chunk=chunk), capture(more, chunk=chunk), limit=1000)
    assert len(output.stdout.encode()) + len(output.stderr.encode()) <= 1000
    assert output.truncated or output.stdout == data.decode(errors='replace')


def test_a_limit_below_the_note_keeps_the_note_only() -> None:
    assert fit_output(capture(b'x' * 100, limit=10), capture(b'', limit=10), limit=10).stdout.strip() == (
        '[… 100 bytes left out …]'
    )


def test_secrets_are_masked_and_the_longest_first() -> None:
    assert mask('key=abcdef abc', ['abc', 'abcdef']) == 'key=[secret] [secret]'
    output = fit_output(capture(b'token s3cr3t!'), capture(b's3cr3t!'), limit=1000, secrets=['s3cr3t!'])
    assert (output.stdout, output.stderr) == ('token [secret]', '[secret]')


@pytest.mark.parametrize('shift', range(40))
def test_no_part_of_a_secret_is_left_at_the_cut(shift: int) -> None:
    secret = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
    data = ('.' * shift + secret).encode() * 3000
    output = fit_output(capture(data), capture(b''), limit=1000, secrets=[secret])
    assert not set(output.stdout.replace('[secret]', '')) & set(secret)


@pytest.mark.parametrize('size', [200, 240, 290, 330, 390, 450, 600, 3000])
def test_no_part_of_a_long_secret_is_left_where_masking_made_the_rest_short(size: int) -> None:
    secret = 'ABCDEFGHIJ' * (size // 10)
    longer = secret + '.' * (size // 3)  # such as its base 64
    output = fit_output(capture(f'{secret}\n'.encode() * 300), capture(b''), limit=1000, secrets=[secret, longer])
    assert output.truncated
    assert not set(output.stdout.replace('[secret]', '')) & set(secret)
