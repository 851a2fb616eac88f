"""Pillow: its results are those of the released wheel for x86-64, bit for bit.

The expected digests were printed by the programs below in the wheel of the same version. Its
libraries have other versions than ours, and vector code that we have not.
"""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[str], str]

PICTURE = """
import hashlib, io
from PIL import Image, ImageChops, ImageCms, ImageDraw, ImageEnhance, ImageFilter, ImageFont
from PIL import ImageMath, ImageMorph, ImageOps, ImageSequence

def show(name, image):
    print(name, image.mode, *image.size, hashlib.sha256(image.tobytes()).hexdigest()[:12])

values = bytes((i * 7919 + (i >> 8) * 104729) % 251 for i in range(65536))
noise = Image.frombytes("L", (256, 256), values)
black = Image.new("L", (256, 256))
picture = Image.merge("RGB", [Image.radial_gradient("L"), Image.linear_gradient("L"), black])
picture.paste(noise, (0, 0), Image.linear_gradient("L").rotate(90))
"""


def test_geometry_colours_and_filters_are_exact(full_python: Run) -> None:
    program = """
for filter in Image.Resampling:
    show(f"resize {filter.name}", picture.resize((100, 77), filter))
show("rotate", picture.rotate(33, Image.Resampling.BICUBIC, expand=True))
show("crop", picture.crop((10, 20, 110, 90)))
slope = (1, .2, 3, .1, 1, 5, .0005, .0003)
show("perspective", picture.transform(
    (200, 200), Image.Transform.PERSPECTIVE, slope, Image.Resampling.BILINEAR))
for mode in ("L", "1", "P", "CMYK", "YCbCr", "HSV", "F"):
    show("convert", picture.convert(mode))
show("quantize", picture.quantize(32, Image.Quantize.MEDIANCUT))
show("gauss", picture.filter(ImageFilter.GaussianBlur(3.3)))
show("unsharp", picture.filter(ImageFilter.UnsharpMask(2, 150, 3)))
show("median", picture.filter(ImageFilter.MedianFilter(5)))
show("kernel", picture.filter(ImageFilter.Kernel((5, 5), range(25))))
show("enhance", ImageEnhance.Contrast(picture).enhance(1.6))
show("autocontrast", ImageOps.autocontrast(picture, 2))
show("soft light", ImageChops.soft_light(picture, picture.rotate(90)))
show("composite", Image.alpha_composite(
    picture.convert("RGBA"), Image.merge("RGBA", [*picture.rotate(180).split(), noise])))
show("math", ImageMath.lambda_eval(lambda of: of["convert"](of["a"] * 2 - of["b"], "L"),
    a=picture.getchannel(0), b=noise))
spots = noise.point(lambda v: 255 * (v > 100))
show("morph", ImageMorph.MorphOp(op_name="erosion8").apply(spots)[1])
show("profiles", ImageCms.profileToProfile(
    picture, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"))
"""
    assert full_python(PICTURE + program) == EXPECTED_OPERATIONS


def test_shapes_and_text_are_exact(full_python: Run) -> None:
    program = """
page = Image.new("RGB", (300, 200), "white")
draw = ImageDraw.Draw(page)
draw.line([(10, 10), (290, 180), (200, 20)], "red", 7, joint="curve")
draw.ellipse((20, 40, 140, 160), "yellow", "blue", 4)
draw.polygon([(200, 100), (280, 150), (220, 190)], "green", "black", 3)
draw.arc((150, 20, 250, 120), 20, 290, "purple", 5)
draw.rounded_rectangle((100, 120, 190, 190), 15, "cyan", "black", 2)
show("shapes", page)
for engine in ImageFont.Layout:
    font = ImageFont.load_default(24).font_variant(layout_engine=engine)
    page = Image.new("RGB", (420, 120), "white")
    draw = ImageDraw.Draw(page)
    draw.text((5, 5), "Hello, World! AVATAR fi", fill="black", font=font)
    draw.text((5, 40), "outlined", fill="navy", font=font, stroke_width=2, stroke_fill="gold")
    draw.multiline_text((5, 75), "one\\ntwo", font=font.font_variant(size=15), fill="red")
    show(engine.name, page)
    print(font.getbbox("Hello AVATAR fi"))
"""
    assert full_python(PICTURE + program) == EXPECTED_DRAWINGS


def test_files_of_all_formats_are_exact(full_python: Run) -> None:
    program = """
def convey(kind, image=picture, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    data = file.getvalue()
    print(kind, *options.values(), len(data), hashlib.sha256(data).hexdigest()[:12])
    again = Image.open(file)
    again.load()
    show(kind, again)

for kind in ("BMP", "GIF", "ICO", "PNG", "PPM", "QOI", "TGA", "WEBP"):
    convey(kind)
convey("JPEG", quality=85)
convey("JPEG", progressive=True, optimize=True, subsampling=0)
convey("JPEG", picture.convert("CMYK"))
convey("JPEG2000", irreversible=False)
convey("JPEG2000", irreversible=True, quality_layers=[30])
convey("PNG", picture.convert("L").convert("I;16"))
convey("WEBP", lossless=True)
for compression in ("raw", "tiff_lzw", "tiff_deflate", "packbits", "jpeg", "zstd", "lzma"):
    convey("TIFF", compression=compression)
convey("TIFF", picture.convert("1"), compression="group4")
convey("TIFF", picture.convert("F"))
"""
    assert full_python(PICTURE + program) == EXPECTED_FILES


def test_animations_keep_their_frames_and_times(full_python: Run) -> None:
    program = """
frames = [picture.rotate(angle).resize((60, 60)) for angle in (0, 30, 60)]
for kind in ("GIF", "WEBP", "PNG", "TIFF"):
    file = io.BytesIO()
    options = {"lossless": True} if kind == "WEBP" else {}
    frames[0].save(file, kind, save_all=True, append_images=frames[1:], duration=40, **options)
    again = Image.open(file)
    print(kind, again.n_frames, again.info.get("duration"))
    same = [ImageChops.difference(frame.convert("RGB"), first).getbbox() is None
            for frame, first in zip(ImageSequence.Iterator(again), frames)]
    print(same if kind != "GIF" else len(same))
"""
    assert full_python(PICTURE + program).splitlines() == [
        "GIF 3 40",
        "3",
        "WEBP 3 None",
        "[True, True, True]",
        "PNG 3 40.0",
        "[True, True, True]",
        "TIFF 3 None",
        "[True, True, True]",
    ]


def test_exif_data_is_written_read_and_applied(full_python: Run) -> None:
    program = """
exif = Image.Exif()
exif[0x010E], exif[0x0112] = "a picture", 6
file = io.BytesIO()
picture.crop((0, 0, 200, 100)).save(file, "JPEG", exif=exif)
again = Image.open(file)
print(sorted(again.getexif().items()), again.size, ImageOps.exif_transpose(again).size)
"""
    printed = full_python(PICTURE + program)
    assert printed == "[(270, 'a picture'), (274, 6)] (200, 100) (100, 200)\n"


def test_damaged_files_are_errors_of_python(full_python: Run) -> None:
    program = """
for kind in ("JPEG", "PNG", "WEBP", "TIFF", "JPEG2000", "GIF"):
    file = io.BytesIO()
    picture.save(file, kind)
    data = file.getvalue()
    for damaged in (data[: len(data) // 2], data[:40] + bytes(200) + data[240:]):
        try:
            Image.open(io.BytesIO(damaged)).load()
        except (OSError, SyntaxError, ValueError) as error:
            pass
print("alive")
"""
    assert full_python(PICTURE + program) == "alive\n"


def test_pixels_are_shared_with_other_libraries(full_python: Run) -> None:
    program = """
import numpy
schema, array = picture.convert("RGBA").__arrow_c_array__()
print(type(schema).__name__, type(array).__name__)
print(Image.fromarray(numpy.asarray(picture)).tobytes() == picture.tobytes())
"""
    assert full_python(PICTURE + program) == "PyCapsule PyCapsule\nTrue\n"


def test_the_package_describes_itself(full_python: Run) -> None:
    printed = full_python("from PIL import features\nfeatures.pilinfo(supported_formats=False)")
    assert "Pillow 13.0.0" in printed
    assert "Binary Pillow modules loaded from /usr" in printed
    assert "--- JPEG support ok" in printed


def test_what_is_supported(full_python: Run) -> None:
    program = """
from PIL import features
names = [*features.modules, *features.codecs, *features.features]
print(*sorted(name for name in names if features.check(name)))
print(*sorted(name for name in names if not features.check(name)))
"""
    assert full_python(program).splitlines() == [
        "freetype2 fribidi harfbuzz jpg jpg_2000 libjpeg_turbo libtiff littlecms2 pil raqm webp "
        "zlib",
        "avif libimagequant mozjpeg tkinter xcb zlib_ng",
    ]


EXPECTED_OPERATIONS = """\
resize NEAREST RGB 100 77 67aa1b897d52
resize BOX RGB 100 77 bbe9c7f70da5
resize BILINEAR RGB 100 77 5b53bfbb0cb4
resize HAMMING RGB 100 77 a9f90d7b7e3d
resize BICUBIC RGB 100 77 282c88b2bcf5
resize LANCZOS RGB 100 77 efd2971c2939
resize MKS2013 RGB 100 77 6546c6ddd29a
resize MKS2021 RGB 100 77 2934973eaae2
rotate RGB 356 356 13c399ffdda2
crop RGB 100 70 bc03d3ad3d36
perspective RGB 200 200 17e30f82d103
convert L 256 256 c623796ff7e7
convert 1 256 256 950bcda3b2be
convert P 256 256 8d6a3d4382de
convert CMYK 256 256 c05f90bb3980
convert YCbCr 256 256 ef801336d079
convert HSV 256 256 3a4d396f41fa
convert F 256 256 1bf032d439b9
quantize P 256 256 4efaf206d1f1
gauss RGB 256 256 c7e366155753
unsharp RGB 256 256 2fe926e5dd66
median RGB 256 256 f2d764275125
kernel RGB 256 256 0142c9cfd5ed
enhance RGB 256 256 8f84ac862b99
autocontrast RGB 256 256 c654eba9067e
soft light RGB 256 256 65059938b476
composite RGBA 256 256 787f338f2349
math L 256 256 be1473cc2b36
morph L 256 256 a2cb71fc1822
profiles LAB 256 256 2e43d7a95fce
"""
EXPECTED_DRAWINGS = """\
shapes RGB 300 200 cecccabde0a8
BASIC RGB 420 120 df9c2af33c30
(0, 6, 170, 24)
RAQM RGB 420 120 b523fac820d6
(0, 6, 164, 24)
"""
EXPECTED_FILES = """\
BMP 196662 7dfc2d6143c1
BMP RGB 256 256 fcb82c34c3a7
GIF 43625 cfd824b251e9
GIF P 256 256 4b73c552d10e
ICO 66520 6d06b4b7810d
ICO RGB 256 256 fcb82c34c3a7
PNG 34396 39041f1f4c74
PNG RGB 256 256 fcb82c34c3a7
PPM 196623 c33825c0aa09
PPM RGB 256 256 fcb82c34c3a7
QOI 227422 0f6aaabd2efb
QOI RGB 256 256 fcb82c34c3a7
TGA 196652 03dfbda73cca
TGA RGB 256 256 fcb82c34c3a7
WEBP 4710 f1861ece5ce6
WEBP RGB 256 256 af8b092c64bc
JPEG 85 17055 8c37c5532152
JPEG RGB 256 256 1ae0c95e9f4a
JPEG True True 0 12854 be0ecb17e3cf
JPEG RGB 256 256 4f1db85941cf
JPEG 40456 ed5115129a59
JPEG CMYK 256 256 1fd6ccfd3795
JPEG2000 False 69482 b6d2fcbde957
JPEG2000 RGB 256 256 fcb82c34c3a7
JPEG2000 True [30] 6389 a40c2cfb8e9a
JPEG2000 RGB 256 256 e375df261b9a
PNG 15805 ac1b3b539e7b
PNG I;16 256 256 509c02282d77
WEBP True 26326 e0c4104147b9
WEBP RGB 256 256 fcb82c34c3a7
TIFF raw 196748 61864c187027
TIFF RGB 256 256 fcb82c34c3a7
TIFF tiff_lzw 233788 0c3b1200311c
TIFF RGB 256 256 fcb82c34c3a7
TIFF tiff_deflate 177296 bc241c4971b2
TIFF RGB 256 256 fcb82c34c3a7
TIFF packbits 198004 0f14d1fafe19
TIFF RGB 256 256 fcb82c34c3a7
TIFF jpeg 39825 b72211f71ced
TIFF RGB 256 256 e87a103bc78a
TIFF zstd 177546 041669a35f20
TIFF RGB 256 256 fcb82c34c3a7
TIFF lzma 93420 ae698fae6c52
TIFF RGB 256 256 fcb82c34c3a7
TIFF group4 17992 cc5ce1bc136a
TIFF 1 256 256 950bcda3b2be
TIFF 262278 e7e8325f5294
TIFF F 256 256 1bf032d439b9
"""
