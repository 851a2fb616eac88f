#| packages: pillow
#| pixels: 0.01
from PIL import Image, ImageDraw, ImageFont, ImagePath

im = Image.new("RGB", (220, 140), "white")
d = ImageDraw.Draw(im)
d.line((0, 0, 220, 140), fill="red", width=3)
d.rectangle((10, 10, 60, 50), outline="black", fill="#ccddff")
d.rounded_rectangle((70, 10, 130, 50), 8, fill="gold")
d.ellipse((140, 10, 200, 60), outline=(0, 128, 0), width=2)
d.polygon([(20, 130), (50, 80), (80, 130)], fill="purple")
d.arc((90, 70, 150, 130), 20, 250, fill="blue", width=4)
d.pieslice((160, 70, 210, 120), 0, 120, fill="orange")
d.point([(5, 5), (6, 6)], fill="black")
font = ImageFont.load_default(size=18)
d.text((100, 60), "Hello, Zoë!", font=font, fill="black")
d.multiline_text(
    (10, 55), "two\nlines", fill="gray", font=ImageFont.load_default(size=10), align="center"
)
print(
    d.textbbox((0, 0), "Hello", font=font),
    font.getlength("Hello"),
    font.getname(),
    ImagePath.Path([(0, 1), (2, 3)]).getbbox(),
)
im.save("drawing.png")
mask = Image.new("L", im.size, 0)
ImageDraw.Draw(mask).ellipse((30, 20, 190, 120), fill=200)
back = Image.new("RGB", im.size, "navy")
back.paste(im, mask=mask)
back.save("masked.png")
ImageDraw.floodfill(back, (1, 1), (255, 255, 0))
print(back.getpixel((2, 2)), im.getpixel((20, 20)), back.getbbox())
